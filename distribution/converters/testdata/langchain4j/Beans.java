@Configuration
class Beans {
    @Bean
    ChatModel assistantModel(@Value("${model.url}") String url) {
        return OllamaChatModel.builder().baseUrl("http://localhost:11434").modelName("llama3.2").numPredict(200).build();
    }

    @Bean
    ChatMemoryProvider chatMemory(TokenCountEstimator estimator) {
        return id -> TokenWindowChatMemory.withMaxTokens(2_000, estimator);
    }

    @Bean
    ChatModel other() {
        return new WatsonxChatModel(url, key);
    }
}

@AiService
@SystemMessage("Today is {{current_date}}. You speak {{language}}.")
public interface Guide {
    Result<String> guide(@MemoryId int user, @UserMessage String question, @V("language") String language);

    Recipe cook(@UserMessage("Make a recipe with {{what}}, {{missing}}") String what);

    String empty(@MemoryId int user);
}
